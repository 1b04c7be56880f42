"""The error of a world file."""


class WorldFileError(ValueError):
    """The world file says something that the emulator does not understand."""
