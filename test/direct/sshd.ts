/** What stands before a real sshd: a forced command, and a line that can be cut. */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { onTestFinished } from 'vitest';

/** A forced command as sites have it: only a sending rsync, below one directory, or nothing. It knows no quotes. */
export function restrictedCommand(directory: string, root: string, allowsRsync = true): string {
  const file = path.join(directory, 'only.sh');
  const script = [
    '#!/bin/sh',
    'case "$SSH_ORIGINAL_COMMAND" in',
    '  *..*) echo "no way up" >&2; exit 1 ;;',
    ...(allowsRsync ? [`  "rsync --server --sender "*" . ${root}/"*) ;;`] : []),
    '  *) echo "not allowed here: $SSH_ORIGINAL_COMMAND" >&2; exit 1 ;;',
    'esac',
    'set -f',
    'exec $SSH_ORIGINAL_COMMAND',
  ];
  fs.writeFileSync(file, `${script.join('\n')}\n`, { mode: 0o755 });
  return file;
}

/** A line between the agent and a server that can be cut, or fall silent, after so many bytes. */
export class CuttableLine {
  readonly port: number;
  /** Bytes towards the agent that each connection lets through; the next connection takes the next one. */
  readonly cuts: number[] = [];
  /** A connection stays open, and says nothing any more, after about so many bytes towards the agent. */
  silentAfterBytes = Number.POSITIVE_INFINITY;
  connections = 0;

  private constructor(port: number) {
    this.port = port;
  }

  static async to(port: number): Promise<CuttableLine> {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const line = new CuttableLine((server.address() as net.AddressInfo).port);
    const sockets = new Set<net.Socket>();
    server.on('connection', (near) => {
      line.connections++;
      let left = line.cuts.shift() ?? Number.POSITIVE_INFINITY;
      let untilSilent = line.silentAfterBytes;
      const far = net.connect(port, '127.0.0.1');
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far);
      far.on('data', (bytes) => {
        left -= bytes.length;
        untilSilent -= bytes.length;
        if (left < 0) near.resetAndDestroy();
        else if (untilSilent < 0) far.pause();
        else if (!near.write(bytes)) {
          far.pause();
          near.once('drain', () => far.resume());
        }
      });
    });
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return line;
  }
}
