/** All that a whole daemon logs of its life, and says to systemd. */
import { once } from 'node:events';
import fs from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import { Place, type Sections } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { runDaemon } from './whole-daemon.ts';

test('a daemon prints the whole of its life: good and bad configurations, a hang-up and a stop', async (context) => {
  const place = Place.make(context);
  const port = await freePort();
  const taken = net.createServer().listen(0, '127.0.0.1');
  context.onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  const busy = (taken.address() as AddressInfo).port;
  const at = (name: string) => path.join(place.directory, name);
  const passwordFile = at('password');
  fs.writeFileSync(passwordFile, 'x\n', { mode: 0o600 });
  fs.writeFileSync(at('other'), 'y\n', { mode: 0o644 });
  // Nothing listens there.
  const service = { baseUrl: `http://127.0.0.1:${port}`, username: 'alice', passwordFile };
  const configure = (sections: Sections = {}) => place.configure(service, { logging: { level: 'info' }, ...sections });
  configure();
  const watched = vi.spyOn(FileWatch.prototype, 'watch');
  context.onTestFinished(() => void watched.mockRestore());
  const { lines, said, end } = await runDaemon(place);
  let printed = '';
  const shown = (value: unknown) =>
    JSON.stringify(value)
      .replaceAll(place.directory, 'DIR')
      .replaceAll(new RegExp(`\\b${port}\\b`, 'g'), 'PORT')
      .replaceAll(new RegExp(`\\b${busy}\\b`, 'g'), 'BUSY')
      .replaceAll(/since \d+ \w+/g, 'since TIME')
      .replaceAll(/"MONOTONIC_USEC":"\d+"/g, '"MONOTONIC_USEC":"TIME"');
  const print = (what: string) => {
    printed += `# ${what}\n`;
    for (const line of lines.splice(0)) {
      const { level, msg, time, pid, ...fields } = JSON.parse(line) as Record<string, string>;
      expect(Math.abs(Date.now() - Date.parse(time ?? ''))).toBeLessThan(600_000);
      printed += `${level} ${msg} ${shown(fields)}${pid === undefined ? '' : ' with its pid'}\n`;
    }
    // A watchdog is fed at its own times.
    const messages = said.splice(0).filter((fields) => !('WATCHDOG' in fields));
    for (const message of new Set(messages.map(shown))) printed += `systemd: ${message}\n`;
    const files = [...(watched.mock.lastCall?.[0].keys() ?? [])];
    printed += `watched: ${files.map((file) => shown(path.relative(place.directory, file))).join(' ')}\n\n`;
  };
  const logged = (msg: string) => until(msg, () => lines.some((line) => line.includes(`"msg":"${msg}"`)));
  print('it starts, and its service is away');
  configure({ service: { colour: 'red' } });
  await logged('reload refused, old configuration kept');
  print('a key that does not exist');
  configure({ state: { directory: at('elsewhere') } });
  await logged('reload refused, old configuration kept');
  print('a state that is elsewhere');
  configure({ auth: { passwordFile: at('other') }, service: { tls: { caFile: at('ca.pem') } } });
  await logged('reload refused, old configuration kept');
  print('certificates that are not there');
  configure();
  await until('the verdict', () => said.some(({ STATUS }) => STATUS !== undefined && !STATUS.includes('refused')));
  print('as it was');
  const blocked = path.join(passwordFile, 'sockets');
  const notify = [{ on: ['failed'], url: 'http://hooks.example.org/x', secretFile: at('other') }];
  configure({ api: { directory: blocked }, metrics: { listen: `127.0.0.1:${busy}` }, notify });
  await until('READY', () => said.some(({ READY }) => READY !== undefined));
  print('ports and sockets that it cannot have');
  process.emit('SIGHUP', 'SIGHUP');
  await until('READY', () => said.some(({ READY }) => READY !== undefined));
  print('a hang-up');
  await end();
  print('a stop');
  await expect(printed).toMatchFileSnapshot('printed.txt');
});
