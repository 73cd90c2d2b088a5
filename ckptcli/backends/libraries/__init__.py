"""The array libraries, one file each; none of them is loaded by its file."""
