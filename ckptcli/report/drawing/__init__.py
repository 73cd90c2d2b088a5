"""What pages and pictures are made of: markup, colours, and one part of a page a file."""
