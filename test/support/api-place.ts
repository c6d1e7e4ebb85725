/** An agent of a user without rights, with its sockets, and other users who ask it; only root can play them. */
import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'vitest';
import { requestOf } from './e2e-job.ts';
import { NOBODY, Place, type Sections } from './e2e-place.ts';
import type { Program } from './e2e-program.ts';

/** By what they are to the agent, whose user and group are NOBODY. */
export const USERS = {
  owner: { user: NOBODY, group: NOBODY },
  member: { user: 65_533, group: NOBODY },
  other: { user: 65_533, group: 65_533 },
} as const;

export async function apiPlace(context: TestContext, sections: Sections = {}) {
  const place = Place.make(context);
  if (process.getuid?.() !== 0) context.skip('only root can run commands as other users');
  place.giveUpRights(context);
  fs.chmodSync(place.directory, 0o755);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const passwordFile = path.join(place.directory, 'password');
  fs.copyFileSync(sandbox.passwordFile, passwordFile);
  fs.chownSync(passwordFile, NOBODY, NOBODY);
  const sockets = path.join(place.directory, 'sockets');
  place.configure(
    { baseUrl: sandbox.baseUrl, username: sandbox.username, passwordFile },
    {
      service: { jobsUrl: sandbox.jobsUrl },
      watch: [requestOf(job)],
      ...sections,
      api: { directory: sockets, ...(sections['api'] as object) },
    },
  );
  const agent = await place.run();
  await agent.logs('sockets listening');
  await place.mirrored(job, 'stdout');
  const as = (who: keyof typeof USERS, ...args: string[]): Program => place.startAs(USERS[who], args);
  return { place, sandbox, job, agent, sockets, as };
}
