"""What people read of the runs, searched by going through their files: tasks, answers and transcripts.

Cleaned texts are searched, line by line, and never the names in the JSON around them.
"""
