"""What a user of the program can mend."""


class UserError(Exception):
    """Something that the user gave cannot be used; the message is one line and says what to do."""
