"""What the program prints and writes, made from frozen data; nothing is computed here."""
