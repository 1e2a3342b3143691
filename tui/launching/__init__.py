"""What a launch dialog knows and asks for, apart from how it is drawn."""
