# The format of logs and commands, with seconds, so that the order of events can be seen.
DATETIME_FORMAT = "Y-m-d H:i:s"
DATE_FORMAT = "Y-m-d"
