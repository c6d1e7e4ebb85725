/** The contract against the sandbox, over SOAP and as the main releases of REST, and what XML 1.0 forbids but servers write (docs/dev/servers.md 2.1). */
import { expect, test } from 'vitest';
import { taskId as taskIdOf } from '../support/wire-remote.ts';
import { contractOf } from './contract.ts';
import { makePlace, readPart, signal } from './contract-place.ts';
import { SandboxService } from './sandbox-service.ts';
import { MAIN_RELEASES, restDialect, soapDialect, VERSIONS } from './service.ts';

contractOf([...VERSIONS.map(soapDialect), ...MAIN_RELEASES.map(restDialect)]);

test.each(VERSIONS)('over SOAP %s control characters come through', async (version) => {
  const stdout = `\x1b[31mred\x1b[0m ${Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('')}\x7f`;
  const name = '/701/\x1b[2J\x07.txt';
  const service = await SandboxService.start();
  try {
    const tasks = [{ taskId: '9001', live: { stdout } }];
    const job = { jobId: '501', tasks, files: new Map([[name, Buffer.from('x')]]) };
    const { remote, jobId } = await makePlace(service, soapDialect(version), job);
    const wanted = [{ taskId: taskIdOf('9001'), file: 'stdout', offset: 0 }] as const;
    const { parts } = await remote.readParts(jobId, wanted, signal);
    expect((await Promise.all(parts.map(readPart))).map(({ text }) => text)).toEqual([stdout]);
    expect(await remote.listChangedFiles(jobId, signal)).toContain(name);
  } finally {
    await service.close();
  }
});
