"""What can go wrong with a measurement: three kinds, each said in one sentence."""


class BenchError(Exception):
    """A measurement or a record cannot be used; the message says why and what to do."""


class Skipped(BenchError):
    """This machine or its software cannot measure a case; the message says why."""


class WrongResult(BenchError):
    """The machine computes wrongly: no figure of it can be trusted."""


class BadRecord(BenchError):
    """A file is no record of measurements; the message names the file and the field."""
