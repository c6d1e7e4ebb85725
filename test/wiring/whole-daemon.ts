/** The daemon as `agent run` composes it, in the process of the test: its log, its metrics, and what it says to systemd. */
import { Writable } from 'node:stream';
import { expect, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { createLog, LogStream } from '../../src/daemon/log.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { Secrets } from '../../src/redact.ts';
import type { Store } from '../../src/store/store.ts';
import type { Place } from '../support/e2e-place.ts';

interface DaemonOptions {
  readonly logLinesLost?: () => number;
  readonly watchdogMs?: number;
  readonly stop?: AbortController;
  readonly logLevel?: 'trace';
  readonly onLine?: (line: string) => void;
  /** Between the reading of the configuration and its first use. */
  readonly before?: (store: Store) => void;
}

export async function runDaemon(
  place: Pick<Place, 'configFile'>,
  { logLinesLost = (): number => 0, watchdogMs, stop = new AbortController(), ...more }: DaemonOptions = {},
) {
  const { logLevel, onLine = () => {}, before } = more;
  const listeners = process.listenerCount('SIGHUP');
  const config = await loadConfig(place.configFile);
  const lines: string[] = [];
  const said: Readonly<Record<string, string>>[] = [];
  const output = new Writable({
    write: (text, _, done) => {
      lines.push(String(text));
      onLine(String(text));
      done();
    },
  });
  const secrets = new Secrets();
  const log = createLog({ level: 'debug', secrets, stream: new LogStream({ output }) });
  const notifier = {
    send: (fields: (typeof said)[number]) => void said.push(fields),
    watchdogMs,
    close() {},
  };
  const owned = openOwnStore(config, log, { secrets });
  let onReady = () => {};
  const ready = new Promise<void>((resolve) => {
    onReady = resolve;
  });
  before?.(owned.store);
  const options = { version: '0.0.0', config, log, secrets, logLinesLost, notifier, stop: stop.signal, onReady };
  const running = new Daemon({ ...owned, ...options, logLevel }).run();
  let hasEnded = false;
  const end = async () => {
    hasEnded = true;
    stop.abort();
    await running.finally(() => owned.close());
    expect(process.listenerCount('SIGHUP')).toBe(listeners);
  };
  onTestFinished(async () => {
    if (!hasEnded) await end();
  });
  await Promise.race([ready, running]);
  return { config, running, log, lines, said, end, store: owned.store };
}

/** The value of each series of `/metrics`. */
export async function seriesAt(port: number): Promise<Map<string, number>> {
  // The server may end an idle connection at the moment of the next request.
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: 'close' } })).text();
  const values = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(values.map((line) => [line.replace(/ \S+$/, ''), Number(line.split(' ').at(-1))]));
}
