/** The built program has parts of some packages only (scripts/smaller-packages.mjs): what it needs of them is there. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PROGRAM } from '../../support/e2e-program.ts';
import { PATIENCE } from '../../support/e2e-until.ts';
import { startProxy } from '../../support/wire-proxy.ts';

it.concurrent('a sync through a proxy', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const asked: string[] = [];
  const proxy = await startProxy(asked, 200);
  context.onTestFinished(() => proxy.close());
  place.configure(sandbox, { service: { proxy: `http://127.0.0.1:${proxy.port}` } });
  const job = await sandbox.submit({ tasks: [{}] });
  const { taskId, files } = taskOf(job);
  fs.writeFileSync(files.stdout, 'hello\n');
  expect(await place.agent('watch', job.jobId, '--task', taskId)).toMatchObject({ code: 0 });
  expect(await place.agent('sync', job.jobId)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('4 verified'),
  });
  expect(asked.length).toBeGreaterThan(0);

  // By the tunnel of a proxy, at whose end nobody speaks TLS here.
  const service = { baseUrl: sandbox.baseUrl.replace('http:', 'https:'), proxy: `http://127.0.0.1:${proxy.port}` };
  place.configure(sandbox, { service });
  expect(await place.agent('sync', job.jobId)).toMatchObject({ stderr: expect.not.stringContaining('unknown cause') });
  expect(asked).toContain(`CONNECT 127.0.0.1:${sandbox.port}`);
});

it('what would fetch a contract, and what is no client, is not in it', () => {
  const chunks = fs.readdirSync(PROGRAM.replace(/cli\/main\.js$/, 'chunks')).filter((name) => name.endsWith('.js'));
  const texts = chunks.map((name) => fs.readFileSync(PROGRAM.replace(/cli\/main\.js$/, `chunks/${name}`), 'utf8'));
  for (const module of [/node_modules\/axios/, /node_modules\/undici\/lib\/mock\//])
    expect(texts.filter((text) => module.test(text))).toEqual([]);
});
