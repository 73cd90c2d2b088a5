"""The laws that figures follow over the points of a sweep: bytes exactly, times
as fitted.

Nothing here knows what a strategy is; a law is about numbers and the places where they were found.
"""
