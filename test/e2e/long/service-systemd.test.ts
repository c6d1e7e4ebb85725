/** The shipped unit, unchanged, started by a real systemd: from the installation to the stop. */
import { expect, it } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { baseConfig, Installation } from '../../support/service-installation.ts';
import { Namespace, needsSystemd } from '../../support/service-namespace.ts';

it('agent.service does what it says', needsSystemd(), async (context) => {
  const host = await Namespace.boot(context);
  const place = { unit: 'agent', configDirectory: '/etc/agent', mirrorDirectory: '/srv/agent' };
  const installed = await Installation.make(host, place);

  await initAndStart(installed);
  await follows(installed);
  await isShutIn(installed);
  await survivesKill(installed);
  await reloads(installed);
  await installed.stops();
  await staysDownWithAWrongConfiguration(installed);
});

/** READY, STATUS and the credential, with the configuration that `agent init` wrote. */
async function initAndStart(installed: Installation): Promise<void> {
  const { host } = installed;
  const tried = await host.sh(
    `agent init --service --url http://127.0.0.1:8090/FileTransferWs --namespace http://sandbox.example.org/ \\
       --base-url http://127.0.0.1:8090 --method password --username alice --secret-stdin < /var/cluster/secrets/password`,
  );
  expect(tried).toMatch(/^[✓+] sign-in/m);
  expect(await host.sh('stat -c "%a %n" /etc/agent/*')).toBe('644 /etc/agent/config.yaml\n600 /etc/agent/password\n');
  // What a unit of version 0.2.0, with its dynamic user, left.
  await host.sh(`mkdir -p -m 700 /var/lib/private && mkdir -p /var/lib/private/agent/state && ln -s private/agent /var/lib/agent
    touch /var/lib/private/agent/state/old && chown -R 64000:64000 /var/lib/private/agent`);
  await host.sh('systemctl start agent');
  expect(await host.sh('stat -c "%F %U %n" /var/lib/agent /var/lib/agent/state/old')).toBe(
    'directory jobtail-agent /var/lib/agent\nregular empty file jobtail-agent /var/lib/agent/state/old\n',
  );
  expect(await installed.show('ActiveState')).toBe('active');
  expect(await installed.show('StatusText')).toMatch(/^following 0 jobs/);
  expect(await host.journal('agent')).toContain('"msg":"signed in"');
}

/** What it says while it follows; what the group may read and others may not. */
async function follows(installed: Installation): Promise<void> {
  const { host, job, mirror, place } = installed;
  await installed.configure(`${baseConfig(place.mirrorDirectory)}metrics: {listen: 127.0.0.1:9464}\n`);
  await until('the metrics', () => host.succeeds('curl -sf http://127.0.0.1:9464/readyz'));
  const { jobId, taskId } = job;
  expect(await installed.agent('watch', jobId, '--task', taskId, '--file', 'stdout')).toBe(`${mirror}\n`);
  await installed.grows();
  await until('systemctl status to tell of it', async () =>
    /^following 1 job, last growth \d+ s ago$/.test(await installed.show('StatusText')),
  );
  expect(await host.sh('journalctl -q --no-pager -o cat -p warning -u agent')).toBe('');

  const asReader = 'setpriv --reuid=4711 --regid="$(getent group jobtail | cut -d: -f3)" --clear-groups';
  expect(await host.sh(`${asReader} head -n 1 "$1"`, mirror)).toMatch(/^line 1: příliš/);
  await expect(host.sh(`${asReader} touch "$1"`, mirror)).rejects.toThrow('Permission denied');
  const asNobody = 'setpriv --reuid=4711 --regid=4711 --clear-groups';
  await expect(host.sh(`${asNobody} head -n 1 "$1"`, mirror)).rejects.toThrow('Permission denied');
}

/** The sandbox is in force in the process itself. */
async function isShutIn(installed: Installation): Promise<void> {
  const { host } = installed;
  const pid = await installed.show('MainPID');
  const status = await host.sh('cat "/proc/$1/status"', pid);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status).toMatch(/^Seccomp:\t2$/m);
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
    expect(status).toMatch(new RegExp(`^${set}:\t0+$`, 'm'));
  }
  expect(await host.sh('cat "/proc/$1/limits"', pid)).toMatch(/^Max core file size +0 +0 /m);
  expect(/^Uid:\t(\d+)/m.exec(status)?.[1]).toBe((await host.sh('id -u jobtail-agent')).trim());
  // Its view of the file system: all of it is read-only but the state and the mirrors; /home is empty.
  const inside = (command: string) => host.sh(`nsenter -t "$1" -m -- sh -c "$2"`, pid, command);
  for (const place of ['/etc', '/usr/local', '/opt/app', '/var']) {
    await expect(inside(`touch ${place}/written`), place).rejects.toThrow('Read-only file system');
  }
  await inside('touch /srv/agent/written /var/lib/agent/written && rm /srv/agent/written /var/lib/agent/written');
  expect(await host.sh('stat -c %a /run/credentials/agent.service/password /etc/agent/password')).toBe('400\n600\n');
  expect(await host.journal('agent')).not.toContain((await host.sh('cat /etc/agent/password')).trim());
}

async function survivesKill(installed: Installation): Promise<void> {
  for (let kill = 1; kill <= 2; kill++) {
    await installed.host.sh('systemctl kill -s KILL --kill-who=main agent');
    await until(`systemd to restart it (${kill})`, async () => (await installed.show('NRestarts')) === String(kill));
    await installed.isActive();
    await installed.grows();
  }
}

async function reloads(installed: Installation): Promise<void> {
  const { host, place } = installed;
  const config = baseConfig(place.mirrorDirectory);
  const pid = await installed.show('MainPID');
  const reload = async (text: string) => {
    await installed.configure(text);
    await host.sh('systemctl reload agent');
  };
  await reload(`${config}results: {intervalSeconds: 7}\n`);
  await until('the change to be taken', async () => /results.*configuration changed/.test(await host.journal('agent')));
  await reload(`${config}results: {intervalSeconds: often}\n`);
  await until('the change to be refused', async () =>
    (await installed.show('StatusText')).includes('the changed configuration is refused: '),
  );
  await reload(config);
  await until('the old one to be back', async () => !(await installed.show('StatusText')).includes('refused'));
  await installed.isActive();
  expect(await installed.show('MainPID'), 'it is the same process').toBe(pid);
}

async function staysDownWithAWrongConfiguration(installed: Installation): Promise<void> {
  const config = baseConfig(installed.place.mirrorDirectory);
  await installed.configure(config.replace('poll:', 'pool:'));
  await expect(installed.host.sh('systemctl start agent')).rejects.toThrow();
  // Not `activating`, which it is while it waits for a restart.
  expect(await installed.show('ActiveState')).toBe('failed');
  expect(await installed.show('ExecMainStatus')).toBe('3');
  expect(await installed.show('NRestarts')).toBe('0');
  expect(await installed.show('StatusText')).toContain('pool: unknown key, did you mean poll?');
}
