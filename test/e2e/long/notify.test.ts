/** Notifications of the built program. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { placeWithJob } from '../../support/e2e-job.ts';

it('agent notify --test sends through each rule, and ends with 1 if one fails', async (context) => {
  const { place, sandbox } = await placeWithJob(context, { spec: { tasks: [{}] } });
  const [events, gate] = ['events', 'gate'].map((name) => path.join(place.directory, name));
  const configure = (notify: readonly unknown[]) =>
    place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl }, results: { enabled: false }, notify });
  // The target works once the gate is there.
  configure([{ on: ['failed'], command: ['sh', '-c', '[ -e "$0" ] && cat >> "$1"', gate, events] }]);
  expect(await place.agent('notify', '--test')).toMatchObject({
    code: 1,
    stdout: 'command sh: failed: sh: exit code 1\n',
  });
  fs.writeFileSync(String(gate), '');
  expect(await place.agent('notify', '--test')).toMatchObject({ code: 0, stdout: 'command sh: delivered\n' });
  expect(JSON.parse(fs.readFileSync(String(events), 'utf8'))).toMatchObject({ type: 'test', count: 1 });
  configure([]);
  expect(await place.agent('notify', '--test')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no notify rules'),
  });
  expect(await place.agent('notify', '--list')).toMatchObject({ code: 8 });
  expect(await place.agent('notify')).toMatchObject({ code: 2 });
});
