class ExtractionFailed(Exception):
    def __init__(self, code, message, *, permanent):
        super().__init__(message)
        self.code, self.permanent = code, permanent
