/** The machine of a run in this process: no timer but those of the injected clock, all is done in a fixed order. */
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { promisify } from 'node:util';

const require = createRequire(import.meta.url);
const timers = require('node:timers') as Record<string, unknown>;
const promises = require('node:timers/promises') as Record<string, unknown>;

const { nextTick } = process;

export type Patched = readonly [owner: object, name: string, value: unknown];

/** Replaces properties; the returned function puts the former ones back. */
export function replaced(patches: readonly Patched[]): () => void {
  const before = patches.map(([owner, name]) => [owner, name, Object.getOwnPropertyDescriptor(owner, name)] as const);
  for (const [owner, name, value] of patches)
    Object.defineProperty(owner, name, { value, configurable: true, writable: true, enumerable: true });
  syncBuiltinESMExports();
  return () => {
    for (const [owner, name, descriptor] of before)
      if (descriptor === undefined) Reflect.deleteProperty(owner, name);
      else Object.defineProperty(owner, name, descriptor);
    syncBuiltinESMExports();
  };
}

/** The line of the stack that called what calls this. */
const callerOf = (stack = '') => stack.split('\n')[2] ?? '';

export class Machine {
  readonly #immediates: (() => void)[] = [];
  /** Timers that were set without the injected clock. */
  readonly strayTimers: string[] = [];
  readonly #restore: () => void;

  /** `monotonic`: the simulated time. */
  constructor(monotonic: () => number) {
    const refused = (name: string, real: unknown): unknown => {
      const promised = (real as { readonly [promisify.custom]?: unknown })[promisify.custom];
      const call = (...args: unknown[]) => {
        const caller = callerOf(new Error().stack);
        if (/(?:\(|at )node:/.test(caller)) return (real as (...all: unknown[]) => unknown)(...args);
        this.strayTimers.push(`${name} ${caller.trim()}`);
        throw new Error(`${name} is not of the injected clock: ${caller.trim()}`);
      };
      return promised === undefined ? call : Object.assign(call, { [promisify.custom]: refused(name, promised) });
    };
    const immediate = (callback: (...args: unknown[]) => void, ...args: unknown[]) => {
      this.#immediates.push(() => callback(...args));
    };
    this.#restore = replaced([
      [globalThis, 'setTimeout', refused('setTimeout', globalThis.setTimeout)],
      [globalThis, 'setInterval', refused('setInterval', globalThis.setInterval)],
      [globalThis, 'setImmediate', immediate],
      [timers, 'setTimeout', refused('setTimeout', timers['setTimeout'])],
      [timers, 'setInterval', refused('setInterval', timers['setInterval'])],
      [timers, 'setImmediate', immediate],
      [promises, 'setTimeout', refused('setTimeout', promises['setTimeout'])],
      [promises, 'setInterval', refused('setInterval', promises['setInterval'])],
      [promises, 'setImmediate', () => new Promise<void>((resolve) => immediate(() => resolve()))],
      [AbortSignal, 'timeout', refused('AbortSignal.timeout', AbortSignal.timeout)],
      // Work is divided by the time it takes: by the simulated one, always in the same way.
      [performance, 'now', monotonic],
    ]);
  }

  /** Resolves when all that can go on without time has come to its next wait. */
  readonly settle = async (): Promise<void> => {
    do {
      for (const callback of this.#immediates.splice(0)) callback();
      // All microtasks run before the next tick, and what they leave for a tick of their own before the one after.
      await new Promise(nextTick);
      await new Promise(nextTick);
    } while (this.#immediates.length > 0);
  };

  close(): void {
    this.#restore();
  }
}
