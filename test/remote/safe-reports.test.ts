/** Whatever a service tells of jobs, no secret of the agent is in it. */
import { expect, it } from 'vitest';
import { hidingSecrets } from '../../src/daemon/connection.ts';
import type { TaskId } from '../../src/job.ts';
import type { JobInformation, JobTime } from '../../src/job-information.ts';
import { Secrets } from '../../src/redact.ts';
import { JOB } from '../support/engine.ts';

const SECRET = 'k3yOfTheSession-that-nobody-may-see';
const text = `it was ${SECRET}, they say`;
const time: JobTime = { text, ms: null };
const times = { startTime: time, endTime: time };
const job: JobInformation = {
  ...{ id: JOB, name: text, state: text, creationTime: time, submitTime: time, ...times },
  tasks: [{ id: '9001' as TaskId, name: text, state: text, errorMessage: text, ...times }],
};
const signal = new AbortController().signal;

it('the agent hides secrets in every text, of one job and of many', async () => {
  const secrets = new Secrets();
  const service = hidingSecrets({ getJob: async () => job, listJobs: async () => [job, job] }, secrets);
  expect(await service.getJob(JOB, signal)).toEqual(job);
  secrets.add('session', SECRET);
  // A job or task can have the number that is a password.
  for (const id of [JOB, '9001']) secrets.add('configured', id);
  const told = [await service.getJob(JOB, signal), ...(await service.listJobs(signal))];
  expect(told).toHaveLength(3);
  const hidden = JSON.stringify(told);
  expect(hidden).not.toContain('k3yOfTheSession');
  // As many texts as there were are still there.
  expect(hidden.split('they say')).toHaveLength(JSON.stringify([job, job, job]).split('they say').length);
  expect([told[0]?.id, told[0]?.tasks[0]?.id]).toEqual([JOB, '9001']);
});
