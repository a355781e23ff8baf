"""Stands where ``skillwire`` would: hands its pipes and words to the warm process, and ends as the fork ends."""

import json
import os
import signal
import socket
import sys

HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)  # until there is somebody to hand them on to
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
asked = json.dumps({"words": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}).encode()
socket.send_fds(line, [b"%d\n" % len(asked)], [0, 1, 2])
line.sendall(asked)
answers = line.makefile("r")
fork = int(answers.readline())
for number in HANDED_ON:
    signal.signal(number, lambda number, frame: os.kill(fork, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
for number in (0, 1, 2):  # whoever waits for the end of a pipe waits for the fork alone
    os.close(number)
code = int(answers.readline())
if code < 0:  # ended by a signal: end by the same
    if -code in HANDED_ON:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
