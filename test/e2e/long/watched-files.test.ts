/** Secrets and certificates that are changed under the running agent. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needs } from '../../support/needs.ts';
import { makeCertificates } from '../../support/wire-certificates.ts';

/** No failed visit is tried again by itself within the time of a test. */
const RARELY = { poll: { minIntervalSeconds: 600, maxIntervalSeconds: 3600 }, results: { enabled: false } };

it.concurrent('a password that was refused is tried at once when its file is written, and no half of it', async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, 'hello\n');
  const passwordFile = path.join(place.directory, 'mounted', 'password');
  fs.mkdirSync(path.dirname(passwordFile));
  fs.writeFileSync(passwordFile, 'wrong');
  const { baseUrl, username } = sandbox;
  place.configure({ baseUrl, username, passwordFile }, { ...RARELY, watch: [requestOf(job)] });
  await place.run();
  await until('the refusal', async () => /sign-in|secret/.test((await place.status()).jobs[0]?.error?.code ?? ''));
  const { signInsRefused } = await sandbox.counters();
  fs.writeFileSync(passwordFile, '');
  fs.appendFileSync(passwordFile, sandbox.secrets.password.slice(0, 3));
  fs.appendFileSync(passwordFile, sandbox.secrets.password.slice(3));
  await place.mirrored(job, 'stdout');
  expect((await sandbox.counters()).signInsRefused, 'no half of it was tried').toBe(signInsRefused);
  await until('the error to go', async () => (await place.status()).jobs[0]?.error === null);
});

it.concurrent('renewed certificates are read anew, also after broken ones', needs('openssl'), async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, 'hello\n');
  const { ca, server } = makeCertificates(place.directory);
  const caFile = path.join(place.directory, 'own-ca.pem');
  fs.writeFileSync(caFile, ca);
  place.configure(sandbox, { service: { tls: { caFile } }, watch: [requestOf(job)] });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  const read = () => agent.logged('configuration unchanged, certificates and secrets read again').length;
  fs.writeFileSync(caFile, Buffer.concat([ca, server.cert]));
  await until('the new ones', () => read() === 1);
  fs.writeFileSync(caFile, 'no certificate');
  await agent.logs('reload refused, old configuration kept');
  fs.appendFileSync(task.files.stdout, 'more\n');
  await place.mirrored(job, 'stdout');
  fs.writeFileSync(caFile, ca);
  await until('those after them', () => read() === 2);
  expect(agent.end).toBeUndefined();
});
