/** What an agent lacks, and how many jobs it may own by it. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { type ErrorCode, JobtailError } from '../../src/errors.ts';
import { Readiness } from '../../src/fleet/agents/readiness.ts';
import type { JobId } from '../../src/job.ts';
import { logLine } from '../../src/printable.ts';
import { Store } from '../../src/store/store.ts';
import { expectCases } from '../support/errors.ts';
import { orderFor } from '../support/fleet-parts.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('what an agent lacks moves jobs, and is logged, as is written in readiness.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'readiness.txt'), (written) => {
    let [now, unready]: [number, string | undefined] = [0, undefined];
    const store = new Store({ directory: temporaryDirectory(), service: '', owner: true, now: () => now });
    const lines: string[] = [];
    const say = (fields: object, message: string) => void lines.push(logLine({ ...fields }, message));
    const log = { debug: say, info: say, warn: say, error: say };
    const readiness = new Readiness({ store, log, monotonic: () => now, now: () => now, unready: () => unready });
    let capacity = '';
    const steps: Readonly<Record<string, (...words: string[]) => unknown>> = {
      lacks: (...words) => {
        unready = words.length === 0 ? undefined : words.join(' ');
      },
      failed: (code) =>
        lines.push(`taken: ${readiness.failed(new JobtailError(code as ErrorCode, `failed by ${code}`))}`),
      stored: () => readiness.stored(),
      disk: (code) => {
        if (code === 'sound') return vi.restoreAllMocks();
        return vi.spyOn(fs, 'accessSync').mockImplementation((path) => {
          throw Object.assign(new Error(code), { code, path: path === store.directory ? 'the state' : path });
        });
      },
      watch: (number, state) => {
        store.jobs.watch(orderFor(Number(number)), 0);
        if (state !== undefined) store.jobs.setState(number as JobId, state as 'ending');
      },
      released: (number) => store.portableRows.forget(number as JobId),
      fails: (number, code) => {
        const error = { code: code as ErrorCode, message: `${code}`, hint: null, since: now };
        const run = { polledAt: 0, grownAt: null, refused: 0, failures: 1, error: code === undefined ? null : error };
        store.jobs.endRun(number as JobId, run);
      },
      acquired: () => readiness.acquired(),
      /** Each second, so long, with so many jobs that are polled: what changes is shown. */
      pass: (seconds, jobs) => {
        for (let second = 0; second < Number(seconds); second++) {
          now += 1_000;
          const run = { polledAt: now, grownAt: null, refused: 0, failures: 0 };
          for (const { jobId, state, error } of store.jobs.all().slice(0, Number(jobs)))
            if (state !== 'ended') store.jobs.endRun(jobId, { ...run, error });
          const found = `${readiness.capacity(100)} jobs${readiness.lacks === null ? '' : `: ${readiness.lacks}`}`;
          if (found !== capacity) lines.push(`at ${now / 1_000}, ${found}`);
          capacity = found;
        }
      },
    };
    for (const step of written.split('; ')) {
      const [word = '', ...words] = step.split(' ');
      expect(Object.keys(steps)).toContain(word);
      steps[word]?.(...words);
    }
    store.close();
    return lines;
  });
});
