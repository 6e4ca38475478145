"""Learns from a person's correction where and how a sender prints a value, and finds it on the sender's next document.

Works on the words of pages with their places, without Django. `lessons.py` has the two verbs, `learn` and `find`.
"""
