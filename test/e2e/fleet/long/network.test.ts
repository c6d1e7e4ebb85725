/** The way to the database: silent for one agent, or the database is away for all of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { until } from '../../../support/e2e-until.ts';
import { Fleet, HEARTBEAT_SECONDS } from '../../../support/fleet.ts';
import { expectEqual, expectSound } from '../../../support/fleet-files.ts';
import { connectTo } from '../../../support/fleet-relay.ts';
import { needs } from '../../../support/needs.ts';

const OUTAGE_MS = 40_000;

it.concurrent('a way to the database that falls silent', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30 });
  await fleet.runSpread();
  // What it owns and does not follow yet, it need not pause.
  await fleet.untilEqual();
  const cleo = fleet.agent('cleo');
  fleet.grow();
  cleo.relay.silence();
  fleet.grow();
  // It has to stop by itself: it can be reported nothing.
  await cleo.program.logs('jobs paused, lease possibly expired');
  await fleet.untilOwned(['cleo']);
  await fleet.untilEqual();
  for (const file of fleet.files.filter((_, index) => index % 4 === 0)) file.rewrite();
  await fleet.untilEqual();
  // All that it said into the silence arrives now.
  cleo.relay.open();
  fleet.grow();
  await expectSound(fleet, 'when the way is open again');
  await fleet.untilSharing('cleo');
  await expectEqual(fleet);
});

it.concurrent('a database that is away: the same agents have the same jobs after', {
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30 });
  await fleet.runSpread();
  await fleet.untilEqual();
  const before = await fleet.owners();
  const said = new Map(fleet.agents.map(({ name, program }) => [name, program.log.length]));
  await fleet.database.kill();
  const awayAt = performance.now();
  fleet.grow();
  // What they own, they go on with.
  await until('a mirror to grow', () => fleet.files.some(({ isEqual }) => isEqual));
  // Each job when its own lease may be over.
  await until('all jobs to be paused', () =>
    fleet.agents.every(({ name, program }) => {
      const paused = program.log
        .slice(said.get(name))
        .filter(({ msg }) => msg === 'jobs paused, lease possibly expired');
      const jobs = paused.reduce((sum, line) => sum + Number(line['jobs']), 0);
      return jobs === [...before.values()].filter((owner) => owner === name).length;
    }),
  );
  const lengths = fleet.files.map(({ mirrorBytes }) => mirrorBytes);
  fleet.grow();
  await sleep(Math.max(0, OUTAGE_MS - (performance.now() - awayAt)));
  // Nobody knows whether the job is still theirs.
  expect(fleet.files.map(({ mirrorBytes }) => mirrorBytes)).toEqual(lengths);
  await fleet.database.start();
  await fleet.untilEqual();
  await sleep(2 * HEARTBEAT_SECONDS * 1_000);
  expect(await fleet.owners()).toEqual(before);
  await expectEqual(fleet);
});

it.concurrent('a session that hangs with the row of a job in its hand', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 12 });
  await fleet.runSpread();
  const [held] = [...(await fleet.owners())].find(([, owner]) => owner === 'ben') ?? [];
  // As an agent that is stopped in the middle of a transaction: with its limit.
  const session = await connectTo(fleet.database.url, '-c idle_in_transaction_session_timeout=5000');
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM jobtail.jobs WHERE job_id = $1 FOR UPDATE', [held]);
  await fleet.agent('ben').kill();
  fleet.grow();
  await fleet.untilOwned(['ben']);
  await session.end();
  await expectEqual(fleet);
});
