"""Plays HASTE's web application: the records it stores and the messages it sends, in its order and shapes."""

from local.producer.api import HasteApi, HasteApiError, QueueNames

__all__ = ["HasteApi", "HasteApiError", "QueueNames"]
