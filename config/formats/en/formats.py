# The format that logs and commands use. It has seconds, so that the order of events can be seen.
DATETIME_FORMAT = "Y-m-d H:i:s"
DATE_FORMAT = "Y-m-d"
