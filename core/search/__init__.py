"""Search the readable texts of runs by reading their files: tasks, answers and transcripts.

Sanitized texts are searched, line by line, but never the names in the JSON around them.
"""
