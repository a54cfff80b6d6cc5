# fake_rank0.py STATUS: listens in place of rank 0, prints its port, and refuses the hello of each rank with the given status.
# A refusal is the rank's own hello with another kind, status and text.
import socket
import struct
import sys

KIND, STATUS, TEXT_BYTES, REFUSAL = 12, 28, 1024, 4
server = socket.create_server(("localhost", 0))
print(server.getsockname()[1], flush=True)
server.settimeout(60)
guest, _ = server.accept()
frame = bytearray()
guest.settimeout(2)
try:
    while more := guest.recv(65536):
        frame += more
        guest.settimeout(0.3)
except socket.timeout:
    pass
struct.pack_into("<I", frame, KIND, REFUSAL)
struct.pack_into("<i", frame, STATUS, int(sys.argv[1]))
frame[-TEXT_BYTES:] = b"no thanks".ljust(TEXT_BYTES, b"\0")
guest.sendall(frame)
guest.settimeout(10)
guest.recv(1)
