/** A transfer method that quotes secrets; test/wiring/secrets.test.ts has the others. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { expectNoSecret, MARK, traces } from '../../support/e2e-secrets.ts';
import { until } from '../../support/e2e-until.ts';

it.concurrent('no secret is shown with a transfer method that quotes them', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(path.join(path.dirname(job.tasks[0]?.files.stdout ?? ''), 'result.txt'), 'a result\n');
  const watch = [{ job: job.jobId, tasks: job.tasks.map(({ taskId }) => taskId) }];
  place.configure(sandbox, { watch, results: { transfer: 'direct' } });
  const code = await sandbox.sessionCode();
  const key = `-----BEGIN OPENSSH PRIVATE KEY-----\n${'b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB'.repeat(4)}\n-----END`;
  const method = (name: string) =>
    `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><GetFileTransferMethodResponse xmlns="http://sandbox.example.org/"><GetFileTransferMethodResult><serverHostname>host</serverHostname><sharedBasepath>/${MARK}/${name}</sharedBasepath><protocol>NetworkShare</protocol><credentials><username>u</username><privateKey>${key}</privateKey></credentials></GetFileTransferMethodResult></GetFileTransferMethodResponse></s:Body></s:Envelope>`;
  const body = method(`${code.slice(1)} ${key.slice(40, 90)}`);
  await sandbox.fault({ kind: 'body', operation: 'GetFileTransferMethod', body, contentType: 'text/xml' });
  const agent = await place.run();
  const isRefused = async () => JSON.stringify(await place.status(job.jobId)).includes('"fallback":"');
  await until('the method to be of no use', isRefused);
  expect((await place.agent('status', job.jobId)).stdout).toContain('by the service, not directly');
  await agent.kill();
  // The path has to be given back as it came, so the state has it, but never the key.
  const found = traces(place, agent);
  const shown = [...found].filter(([name]) => !path.basename(name).startsWith('agent.db'));
  expect(Buffer.concat(shown.map(([, bytes]) => bytes)).toString('latin1')).toContain(MARK);
  expectNoSecret(new Map(shown), [code, key.slice(36, -8)]);
  expect([...found.values()].some((bytes) => bytes.includes(key.slice(100, 150)))).toBe(false);
});
