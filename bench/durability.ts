/** Appends that are flushed and committed: by the agent's polls, by the least code for it, and by the flushes alone. */
import fs from 'node:fs';
import path from 'node:path';
import type { Figures, Measurement, Prepared } from './measurement.ts';
import { run } from './processes.ts';
import type { AppendsDone, AppendsRequest } from './sides/durable-appends.ts';

const SCRIPT = path.join(import.meta.dirname, 'sides/durable-appends.js');

export const durability: Measurement = {
  name: 'durability',
  needs: [],
  goals: [
    {
      what: 'appends to 100 files, flushed and committed, against the same flushes alone',
      ...{ kind: 'ratio', figure: 'seconds', ours: 'agent', peer: 'alone', atMost: 1.5 },
    },
    {
      what: 'the same, against the least code that also compares the overlap',
      ...{ kind: 'ratio', figure: 'seconds', ours: 'agent', peer: 'least', atMost: 1.5 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const order = { files: 100, rounds: place.quick ? 3 : 20, bytes: 10_000 };
    // As many commits as the agent made, so that the same flushes are done.
    let commits = order.rounds;
    const append = async (side: AppendsRequest['side']): Promise<Figures> => {
      const directory = fs.mkdtempSync(path.join(place.directory, side));
      const whole: AppendsRequest = { ...order, side, directory, commits };
      const { stdout } = await run(process.execPath, [SCRIPT, JSON.stringify(whole)]);
      const done = JSON.parse(stdout) as AppendsDone;
      if (side === 'agent') commits = done.commits;
      return { ...done };
    };
    const sides = { agent: () => append('agent'), least: () => append('least'), alone: () => append('alone') };
    return { sides, close: async () => {} };
  },
};
