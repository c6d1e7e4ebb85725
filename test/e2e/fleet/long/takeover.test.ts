/** What a fleet is for: an agent is lost, and the others go on where it was; when it is back, it writes nothing of before. */
import { expect, it } from 'vitest';
import { Fleet, type FleetAgent } from '../../../support/fleet.ts';
import { needs } from '../../../support/needs.ts';

/** From the loss of an agent to the last of its jobs having another owner. */
const TAKEOVER_MS = 60_000;

const LOSSES: readonly (readonly [
  name: string,
  lose: (agent: FleetAgent) => unknown,
  back: (agent: FleetAgent) => unknown,
])[] = [
  ['ben', ({ program }) => program.kill(), (agent) => agent.start()],
  // For longer than its lease.
  ['ben', ({ program }) => program.signal('SIGSTOP'), ({ program }) => program.signal('SIGCONT')],
  // It has to stop by itself: nothing can be reported to it. All that it said into the silence arrives in the end.
  [
    'cleo',
    async ({ relay, program }) => {
      relay.silence();
      await program.logs('jobs paused, lease possibly expired');
    },
    ({ relay }) => relay.open(),
  ],
];

it('a fleet takes over the jobs of an agent that is killed, stopped or cut off', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30 });
  await fleet.runSpread();
  await fleet.untilEqual();
  for (const [name, lose, back] of LOSSES) {
    const before = await fleet.owners();
    fleet.grow();
    const lostAt = performance.now();
    await lose(fleet.agent(name));
    fleet.grow();
    await fleet.expectSound('after the loss');
    await fleet.untilOwned([name]);
    expect(performance.now() - lostAt).toBeLessThan(TAKEOVER_MS);
    const after = await fleet.owners();
    // No other agent lost a job by it.
    for (const [jobId, owner] of before) if (owner !== name) expect(after.get(jobId)).toBe(owner);
    await fleet.untilEqual();
    // What it was about to write is older than this.
    fleet.grow();
    for (const file of fleet.files.filter((_, index) => index % 3 === 0)) file.rewrite();
    await back(fleet.agent(name));
    await fleet.expectSound('when it is back');
    await fleet.untilSpread();
    await fleet.expectEqual();
  }
});
