/** A password over plain http is warned of also by a command that makes sign-ins itself. */
import path from 'node:path';
import { it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';

it('watch --foreground warns of an address without TLS', async (context) => {
  const place = Place.make(context);
  const passwordFile = path.join(place.directory, 'password');
  place.configure({ baseUrl: 'http://middleware.invalid', username: 'alice', passwordFile });
  const foreground = place.start(['watch', '501', '--task', '9001', '--foreground']);
  const warning = 'http://middleware.invalid is not encrypted: passwords and session codes are sent unencrypted';
  await until('the warning', () => foreground.stderr.includes(warning));
  foreground.signal('SIGTERM');
  await foreground.ended;
});
