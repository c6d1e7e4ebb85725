/** The state of this process and what its commands print. */
import { onTestFinished, vi } from 'vitest';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { LinkedAbort } from '../../src/linked-abort.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';

/** What a command prints on both outputs until the test ends, which restores the exit code. */
export function captured(): () => string {
  let printed = '';
  const print = (text: string | Uint8Array) => {
    printed += String(text);
    return true;
  };
  const { exitCode } = process;
  process.exitCode = undefined;
  vi.spyOn(process.stdout, 'write').mockImplementation(print);
  vi.spyOn(process.stderr, 'write').mockImplementation(print);
  onTestFinished(() => {
    vi.restoreAllMocks();
    process.exitCode = exitCode;
  });
  return () => printed;
}

/** A configuration for REST, and the state that this process owns as a running agent would. */
export async function ownState(sections: Readonly<Record<string, unknown>> = {}) {
  const { directory, file, config } = await restConfig(sections);
  const { store, close } = openOwnStore(config, SILENT);
  onTestFinished(close);
  return { directory, file, config, store };
}

/** The limits of a command are over so many times as soon. */
export function withoutPatience(times: number) {
  const [now, { within }] = [performance.now.bind(performance), LinkedAbort.prototype];
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(performance, 'now').mockImplementation(() => now() * times);
  return vi.spyOn(LinkedAbort.prototype, 'within').mockImplementation(function (this: LinkedAbort, ms) {
    return within.call(this, ms / times);
  });
}
