/** A socket as systemd listens on: takes the messages of sd_notify(3). */
import { createRequire } from 'node:module';
import path from 'node:path';
import type { TestContext } from 'vitest';
import { temporaryDirectory } from './temp-directory.ts';

type Message = Readonly<Record<string, string>>;

interface Socket {
  bind(path: string): void;
  close(): void;
}
interface UnixDatagrams {
  createSocket(type: 'unix_dgram', onMessage: (bytes: Buffer) => void): Socket;
}

/** Whether the optional native module is there. */
export function datagramsAreMissing(): boolean {
  try {
    createRequire(import.meta.url)('unix-dgram');
    return false;
  } catch {
    return true;
  }
}

interface NotifySocket {
  readonly path: string;
  /** What came so far. */
  readonly messages: readonly Message[];
}

export function notifySocket({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): NotifySocket {
  const { createSocket }: UnixDatagrams = createRequire(import.meta.url)('unix-dgram');
  const file = path.join(temporaryDirectory(undefined, { onTestFinished }), 'notify');
  const messages: Message[] = [];
  const socket = createSocket('unix_dgram', (bytes) => {
    const fields = bytes.toString('utf8').split('\n');
    messages.push(Object.fromEntries(fields.map((field) => field.split(/=(.*)/s, 2) as [string, string])));
  });
  socket.bind(file);
  onTestFinished(() => socket.close());
  return { path: file, messages };
}
