/** Notifications of the built program: over a kill between the mirror and the delivery, and by `agent notify`. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { placeWithJob } from '../../support/e2e-by-number.ts';
import { taskOf } from '../../support/e2e-job.ts';
import { readIfThere } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

interface Event {
  readonly id: string;
  readonly type: string;
  readonly jobId: string;
  readonly line?: number;
  readonly text?: string;
}

async function placeWithRules(context: Parameters<typeof placeWithJob>[0]) {
  const spec = { tasks: [{ command: ['sh', '-c', 'echo begun; while :; do sleep 1; done'] }] };
  const found = await placeWithJob(context, { spec });
  const { place, sandbox } = found;
  const events = path.join(place.directory, 'events');
  const gate = path.join(place.directory, 'gate');
  // The target works once the gate is there.
  const command = ['sh', '-c', `[ -e "$0" ] && cat >> "$1"`, gate, events];
  const notify = [{ on: ['started', 'match', 'failed'], match: 'ERROR \\d+', files: ['stdout'], command }];
  const { jobsUrl } = sandbox;
  const configure = (rules: readonly unknown[]) =>
    place.configure(sandbox, { service: { jobsUrl }, results: { enabled: false }, notify: rules });
  configure(notify);
  /** Whole lines: the last one may be half written. */
  const received = (): Event[] =>
    (readIfThere(events)?.toString() ?? '')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event);
  return { ...found, configure, received, open: () => fs.writeFileSync(gate, '') };
}

it('every event arrives, over kills between append and delivery', PATIENCE, async (context) => {
  const { place, sandbox, job, received, open } = await placeWithRules(context);
  const { jobId } = job;
  const { files } = taskOf(job);
  const agent = await place.run();
  expect(await place.agent('watch', jobId)).toMatchObject({ code: 0 });
  await place.mirrored(job, 'stdout');
  fs.appendFileSync(files.stdout, 'ERROR 1\nERR');
  await agent.logs('notification failed');
  await place.mirrored(job, 'stdout');
  await agent.kill();
  fs.appendFileSync(files.stdout, 'OR 2\nno error\nERROR 3\n');
  const second = await place.run();
  await place.mirrored(job, 'stdout');
  await second.kill();
  const list = await place.agent('notify', '--list', '--json');
  expect(list.code).toBe(0);
  const { deliveries } = JSON.parse(list.stdout) as { deliveries: { event: Event; attempts: number; state: string }[] };
  expect(deliveries.map(({ event, state }) => [event.type, state])).toContainEqual(['started', 'waiting']);
  expect((await place.agent('notify', '--list')).stdout).toMatch(
    new RegExp(`started job ${jobId} to command sh: .*attempt`),
  );
  open();
  const third = await place.run();
  await until('all matches', () => received().filter(({ type }) => type === 'match').length >= 3);
  await sandbox.change(jobId, 'fail', { message: 'out of memory' });
  await place.agent('watch', jobId, '--no-wait');
  await until('the end', () => new Set(received().map(({ type }) => type)).size === 3);
  await third.kill();
  const once = new Map(received().map((event) => [event.id, event]));
  const shown = [...once.values()].map(({ type, line, text }) => [type, line, text]);
  // Not always in this order: what failed waits for its next attempt.
  expect(new Set(shown.map(([type]) => type))).toEqual(new Set(['started', 'failed', 'match']));
  expect(shown.filter(([type]) => type === 'match').sort()).toEqual([
    ['match', 2, 'ERROR 1'],
    ['match', 3, 'ERROR 2'],
    ['match', 5, 'ERROR 3'],
  ]);
});

it('agent notify --test sends through each rule, and ends with 1 if one fails', PATIENCE, async (context) => {
  const { place, configure, received, open } = await placeWithRules(context);
  expect(await place.agent('notify', '--test')).toMatchObject({
    code: 1,
    stdout: 'command sh: failed: sh: exit code 1\n',
  });
  open();
  expect(await place.agent('notify', '--test')).toMatchObject({ code: 0, stdout: 'command sh: delivered\n' });
  expect(received()).toMatchObject([{ type: 'test', count: 1 }]);
  configure([]);
  expect(await place.agent('notify', '--test')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no notify rules'),
  });
  expect(await place.agent('notify', '--list')).toMatchObject({ code: 8 });
  expect(await place.agent('notify')).toMatchObject({ code: 2 });
});
