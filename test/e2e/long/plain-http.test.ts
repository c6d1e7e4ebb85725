/** A password over plain http is warned of wherever a sign-in is made of, not only by `agent check`. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../../../simulator/free-port.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';

const SAID = 'http://middleware.invalid is not encrypted: passwords and session codes are sent unencrypted';

it.concurrent('run, check and watch --foreground warn of an address without TLS', async (context) => {
  const place = Place.make(context);
  const service = {
    baseUrl: 'http://middleware.invalid',
    username: 'alice',
    passwordFile: path.join(place.directory, 'password'),
  };
  place.configure(service);
  const foreground = place.start(['watch', '501', '--task', '9001', '--foreground']);
  await until('the warning', () => foreground.stderr.includes(SAID));
  foreground.signal('SIGTERM');
  await foreground.ended;
  expect((await place.agent('check')).stdout).toContain(`! ${' '.repeat(14)}${SAID}`);

  const agent = await place.run();
  expect(await agent.logs('connection not encrypted', { err: SAID })).toMatchObject({
    level: 'warn',
    scope: 'the service',
    hint: expect.any(String),
  });
  // Another configuration: not a word of an address on this machine.
  place.configure({ ...service, baseUrl: `http://127.0.0.1:${await freePort()}` });
  await agent.logs('configuration changed');
  await until('it to follow by the new one', () => agent.logged('agent ready').length > 1);
  expect(agent.logged('connection not encrypted')).toHaveLength(1);
});
