"""A pass without arrays: a recorded program, played by the engine itself under any strategy."""
