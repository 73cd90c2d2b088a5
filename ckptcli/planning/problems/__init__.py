"""One kind of problem a file; `reading` finds them by the word that a file calls them."""
