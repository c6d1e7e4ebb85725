/** The built program follows jobs of PHP's SoapServer by their numbers, with JobManagementWs and without. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { needs } from '../../support/needs.ts';
import { PhpService } from '../php-service.ts';
import { VERSIONS } from '../service.ts';

const JOB = '501';
/** Of the second one, only JobManagementWs can tell: nothing leads to its number. */
const TASKS = ['509', '7000000000001'];

const job = (state: string, tasks: readonly string[]) => ({
  ...{ id: JOB, name: 'měření & <b>', state, priority: 'Average' },
  ...{ creationTime: '2026-02-03T04:05:06', submitTime: '2026-02-03T04:05:07Z', startTime: null, endTime: null },
  totalAllocatedTime: null,
  tasks: {
    SubmittedTaskInfoExt: tasks.map((id) => ({
      ...{ id, name: `task ${id}`, state, allocatedTime: null, allocatedCoreIds: null },
      ...{ startTime: null, endTime: null, errorMessage: state === 'Failed' ? 'uzel 7: <konec>' : null },
      allParameters: null,
    })),
  },
});

/** In ASCII: PHP sends no text that an offset begins within a character. */
const served = (tasks: readonly string[], text: string) => ({
  jobId: JOB,
  tasks: tasks.map((taskId) => ({ taskId, live: { stdout: `${taskId}: ${text}` } })),
  files: new Map([['/507/out.dat', Buffer.from('result')]]),
});

describe("the program on PHP's SoapServer", { ...PATIENCE, ...needs('php', 'php-soap') }, () => {
  test.concurrent.for(VERSIONS)('over SOAP %s', async (soapVersion, context) => {
    const service = await PhpService.start();
    const place = Place.make(context);
    // It ends after the agent that calls it.
    context.onTestFinished(async () => {
      await Promise.all(place.programs.map((program) => program.kill()));
      await service.close();
    });
    const grant = await service.grant('session');
    const sessionCodeFile = path.join(place.directory, 'session-code');
    fs.writeFileSync(sessionCodeFile, grant.kind === 'session' ? grant.code : '', { mode: 0o600 });
    const configure = (jobsUrl: string | null) =>
      place.writeConfig(
        JSON.stringify({
          service: { fileTransferUrl: service.url, jobsUrl, namespace: service.namespace, soapVersion, concurrency: 1 },
          auth: { method: 'session-code', sessionCodeFile },
          mirror: { directory: place.mirror },
          state: { directory: place.state },
          poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
          results: { intervalSeconds: 1 },
        }),
      );
    const shows = (taskId: string, text: string) => {
      const mirror = place.mirrorOf(JOB, taskId, 'stdout');
      return until(mirror, () => fs.existsSync(mirror) && fs.readFileSync(mirror, 'utf8') === `${taskId}: ${text}`);
    };

    // By the interface alone.
    await service.serve({ ...served(TASKS.slice(0, 1), 'first\n'), information: [job('Running', TASKS)] });
    configure(null);
    const agent = await place.run();
    const watched = await place.agent('watch', JOB);
    expect(watched.stderr).toContain('tasks: 1, found by probes for their files');
    expect(watched.stdout.split('\n')).toContain(place.mirrorOf(JOB, '509', 'stdout'));
    await shows('509', 'first\n');
    await agent.kill();

    // By what is reported, from then on.
    await service.serve({ ...served(TASKS, 'first\nand more\n'), information: [job('Failed', TASKS)] });
    configure(service.jobsUrl);
    const listed = await place.agent('jobs', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject({
      jobs: [
        {
          jobId: JOB,
          name: 'měření & <b>',
          jobState: 'Failed',
          watchState: 'watched',
          submitTime: { ms: 1770091507000 },
        },
      ],
    });
    await place.run();
    for (const taskId of TASKS) await shows(taskId, 'first\nand more\n');
    const page = (await place.agent('status', JOB)).stdout;
    expect(page).toContain('tasks: 2, reported by the middleware');
    expect(page).toContain(`task 509 (task 509) Failed: uzel 7: <konec>`);
  });
});
