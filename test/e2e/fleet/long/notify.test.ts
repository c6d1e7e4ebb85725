/** Notifications of a fleet: at least once over a takeover, each line by its number, and none for what was read before. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { NotifyEvent } from '../../../../src/notification.ts';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { Fleet } from '../../../support/fleet.ts';
import { needs } from '../../../support/needs.ts';

const JOBS = 8;

it('each match is notified of, by the owner before or after a kill', {
  ...PATIENCE,
  ...needs('postgres'),
}, async (context) => {
  const directory = fs.mkdtempSync('/tmp/jobtail-fleet-events-');
  context.onTestFinished(() => fs.rmSync(directory, { recursive: true }));
  const [events, gate] = [path.join(directory, 'events'), path.join(directory, 'gate')];
  // It works once the gate is there: until then, all deliveries wait.
  const command = ['sh', '-c', '[ -e "$0" ] && cat >> "$1"', gate, events];
  const notify = [{ on: ['match'], match: '^mark ', files: ['stdout'], command }];
  const fleet = await Fleet.make(context, { jobs: JOBS, agents: ['anna', 'ben'], sections: { notify } });
  const stdout = fleet.jobs.map(({ tasks: [task] }) => task?.files.stdout ?? '');
  const mark = (word: string) => {
    for (const file of stdout) fs.appendFileSync(file, `something\nmark ${word}\n`);
  };
  await fleet.runSpread();
  mark('before');
  const waiting = async () => (await fleet.query(`SELECT key FROM jobtail.rows WHERE kind = 'outbox'`)).length;
  await until('the deliveries to be in the database', async () => (await waiting()) === JOBS);
  await fleet.agent('ben').kill();
  mark('after');
  fs.writeFileSync(gate, '');
  await fleet.untilOwned(['ben']);
  const found = () => {
    const text = fs.existsSync(events) ? fs.readFileSync(events, 'utf8') : '';
    const received = text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as NotifyEvent);
    return new Map(received.map((event) => [event.id, event]));
  };
  const shown = () => [...found().values()].map(({ jobId, text, count }) => `${jobId} ${text} ${count}`).sort();
  const wanted = fleet.jobs.flatMap(({ jobId }) => [`${jobId} mark after 1`, `${jobId} mark before 1`]).sort();
  // Those of a job wait for the next minute of its rule, gathered or not: what counts is their sum.
  const sum = () => [...found().values()].reduce((total, { count }) => total + count, 0);
  await until('all of them', () => sum() >= wanted.length);
  expect(sum()).toBe(wanted.length);
  for (const line of shown().filter((text) => text.endsWith(' 1'))) expect(wanted).toContain(line);
});
