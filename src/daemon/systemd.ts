/**
 * sd_notify(3): reports the status of the agent to systemd, over the datagram socket of $NOTIFY_SOCKET. Node.js has no
 * such sockets, so the native module `unix-dgram` sends. It is optional: only `Type=notify` needs it.
 */
import { createRequire } from 'node:module';
import { printable } from '../printable.ts';

type NotifyFields = Readonly<Record<string, string>>;

export interface Notifier {
  /** Never throws; fields that could not be sent go with the next message. */
  send(fields: NotifyFields): void;
  /** Maximum milliseconds between two WATCHDOG=1; undefined without a watchdog. */
  readonly watchdogMs: number | undefined;
  close(): void;
}

interface NotifierOptions {
  /** Variables of the protocol are removed from it, so that no child process sends notifications. */
  readonly env: Record<string, string | undefined>;
  readonly pid: number;
  readonly onProblem: (message: string) => void;
}

const SILENT: Notifier = { send: () => {}, watchdogMs: undefined, close: () => {} };

export function createNotifier({ env, pid, onProblem }: NotifierOptions): Notifier {
  const path = env['NOTIFY_SOCKET'];
  const watchdogMs = watchdogOf(env, pid);
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  if (path === undefined || path === '') return SILENT;
  if (!path.startsWith('/')) {
    // unix-dgram writes the address as a C string, and that of an abstract socket begins with a NUL.
    onProblem(`NOTIFY_SOCKET is an abstract socket (${path}), which cannot be used: set Type=exec in the unit`);
    return SILENT;
  }
  let socket: DatagramSocket;
  try {
    const { createSocket }: UnixDatagrams = createRequire(import.meta.url)('unix-dgram');
    socket = createSocket('unix_dgram');
  } catch (error) {
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    onProblem(`unix-dgram cannot be loaded (${why}): run npm rebuild unix-dgram`);
    return SILENT;
  }
  let unsent: NotifyFields = {};
  let hasFailed = false;
  const send = (fields: NotifyFields) => {
    const message = { ...unsent, ...fields };
    const lines = Object.entries(message).map(([name, value]) => `${name}=${printable(value.replaceAll(/\s+/g, ' '))}`);
    const bytes = Buffer.from(lines.join('\n'));
    socket.send(bytes, 0, bytes.length, path, (error) => {
      unsent = error === undefined ? {} : message;
      if (error !== undefined && !hasFailed) onProblem(error.message);
      hasFailed = error !== undefined;
    });
  };
  return { send, watchdogMs, close: () => socket.close() };
}

function watchdogOf(env: NotifierOptions['env'], pid: number): number | undefined {
  const microseconds = Number(env['WATCHDOG_USEC']);
  const meant = env['WATCHDOG_PID'] ?? String(pid);
  return microseconds > 0 && meant === String(pid) ? microseconds / 1000 : undefined;
}

interface DatagramSocket {
  send(bytes: Buffer, offset: number, length: number, path: string, done: (error?: Error) => void): void;
  close(): void;
}
interface UnixDatagrams {
  createSocket(type: 'unix_dgram'): DatagramSocket;
}

/** The fields that announce a reload; READY=1 ends it. */
export function reloading(): NotifyFields {
  return { RELOADING: '1', MONOTONIC_USEC: String(process.hrtime.bigint() / 1000n) };
}
