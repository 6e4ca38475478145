# As in logs and commands, and to the second: what happened first has to be seen.
DATETIME_FORMAT = "Y-m-d H:i:s"
DATE_FORMAT = "Y-m-d"
