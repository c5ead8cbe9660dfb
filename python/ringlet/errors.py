"""The errors that calls raise, one class for each kind, as in C++."""


class Error(RuntimeError):
    """The base of all of them. `rank` is the rank in the world that caused the error, or -1."""

    def __init__(self, text: str, rank: int = -1) -> None:
        super().__init__(text)
        self.rank = rank

    def __reduce__(self) -> tuple:
        return type(self), (str(self), self.rank)


class InvalidArgument(Error, ValueError):
    """The caller's mistake. Nothing has moved, and the group lives on."""


class MismatchError(Error):
    """Ranks disagree about a call. Every rank gets the error."""


class PeerLost(Error):
    """A rank died, was cut off, or left."""


class Timeout(Error):
    """The deadline of an operation, or of the ranks' meeting, has passed."""


class ProtocolError(Error):
    """A peer sent something that the protocol does not allow."""


class Cancelled(Error):
    """The group was closed while the call was running."""


class IoError(Error, OSError):
    """A file cannot be read or written, or is damaged, or the system has no descriptors left."""

    # OSError would take two arguments for a number and its text.
    def __new__(cls, *arguments: object) -> "IoError":
        return OSError.__new__(cls)

    def __str__(self) -> str:
        return RuntimeError.__str__(self)
