"""The child process of a hostile server: its stdin and stdout are the adversary's, which lives in the test.

Run as ``python relay.py PORT``. Whatever comes from the test goes to stdout, byte for byte; when the test hangs
up, the process ends in the middle of whatever it was saying.
"""

import _socket  # the modules around these two take longer to load than everything else here, in every test
import _thread
import os
import sys

CHUNK = 65536


def speak() -> None:
    while data := line.recv(CHUNK):
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]
    os._exit(1)


line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
line.connect(("127.0.0.1", int(sys.argv[1])))
_thread.start_new_thread(speak, ())
while data := os.read(0, CHUNK):
    line.sendall(data)
os._exit(0)
