"""A sweep that kills and faults every process of the program while real runs go on, and checks what is left of them."""
