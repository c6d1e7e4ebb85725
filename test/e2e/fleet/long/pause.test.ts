/** An agent that is stopped (SIGSTOP) for longer than its lease, and goes on: it must not write another byte. */
import fs from 'node:fs';
import path from 'node:path';
import { it } from 'vitest';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { Fleet } from '../../../support/fleet.ts';
import { expectEqual, expectSound } from '../../../support/fleet-proof.ts';
import { needs } from '../../../support/needs.ts';

it.concurrent('an agent that was stopped for longer than its lease', {
  ...PATIENCE,
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30 });
  await fleet.runSpread();
  const ben = fleet.agent('ben');
  for (let round = 0; round < 2; round++) {
    fleet.grow();
    await ben.pause();
    fleet.grow();
    await fleet.untilOwned(['ben']);
    await fleet.untilEqual();
    // What it was about to write is older than this.
    fleet.grow();
    for (const file of fleet.files.filter((_, index) => index % 3 === 0)) file.rewrite();
    ben.resume();
    await expectSound(fleet, 'after it went on');
    await fleet.untilSharing('ben');
    await expectEqual(fleet);
  }
});

/** What shows that an agent is at a step of a new generation. */
const STEPS = {
  'the copy appears': (name: string) => name.endsWith('.keeping') || /\.keeping\b/.test(name),
  'the copy has its number': (name: string) => name.endsWith('.1'),
  'the mirror is cut': (name: string, mirror: string) => name === 'stdout.log' && bytesOf(mirror) === 0,
};

it.concurrent.for(Object.entries(STEPS))(
  'an agent that was stopped when %s',
  { ...PATIENCE, ...needs('postgres') },
  async ([, isMeant], context) => {
    const fleet = await Fleet.make(context, { jobs: 4, agents: ['anna', 'ben'] });
    fleet.grow(50);
    await fleet.run();
    await fleet.untilEqual();
    for (const job of fleet.jobs) {
      const [file] = fleet.filesOf(job);
      if (file === undefined) throw new Error('no file');
      const owner = fleet.agent(await until('an owner', async () => (await fleet.owners()).get(job.jobId)));
      let isStopped = false;
      const watcher = fs.watch(path.dirname(file.mirror), (_, name) => {
        if (isStopped || name === null || !isMeant(name, file.mirror)) return;
        isStopped = true;
        owner.program.signal('SIGSTOP');
      });
      file.rewrite();
      await until('the step', () => isStopped || file.isEqual);
      watcher.close();
      if (isStopped) await fleet.untilOwned([owner.name]);
      for (const other of fleet.files) other.append(5);
      if (isStopped) owner.resume();
      await expectSound(fleet, 'after it went on');
      await fleet.untilEqual();
      // Both take part again.
      await fleet.untilSpread();
    }
    await expectEqual(fleet);
  },
);

const bytesOf = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.size;
