"""A contender of Kazoo's: `peer.py ADDRESS`, then one order a line; ends with its starter."""

import os
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout


class Peer:
    def __init__(self, address):
        self.client = KazooClient(hosts=address)
        self.client.start()
        self.held = None
        self.patterns = []

    def obey(self, order, *words):
        return getattr(self, order)(*words)

    def heed(self, pattern):
        """Makes the locks from now on count nodes that match as contenders."""
        self.patterns.append(pattern)
        return "heeded"

    def acquire(self, path, millis):
        lock = self.lock(path)
        try:
            lock.acquire(timeout=int(millis) / 1000)
        except LockTimeout:
            return "timeout"
        self.held = lock
        return f"acquired {path}/{lock.node} {self.czxid(lock)}"

    def release(self):
        self.held.release()
        return "released"

    def record(self, path, folder, times):
        """Two inside at once would both create the file; the list has the tokens in their order."""
        inside = os.path.join(folder, "inside")
        for _ in range(int(times)):
            lock = self.lock(path)
            lock.acquire()
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
            with open(os.path.join(folder, "tokens"), "a") as tokens:
                tokens.write(f"{self.czxid(lock)}\n")
            os.remove(inside)
            lock.release()
        return "done"

    def lock(self, path):
        return self.client.Lock(path, "kazoo", extra_lock_patterns=self.patterns)

    def czxid(self, lock):
        return self.client.exists(f"{lock.path}/{lock.node}").czxid


def main():
    peer = Peer(sys.argv[1])
    print("ready", flush=True)
    for order in sys.stdin:
        print(peer.obey(*order.split()), flush=True)


main()
