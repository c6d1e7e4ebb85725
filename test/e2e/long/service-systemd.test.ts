/** The shipped unit, unchanged, started by a real systemd: from the installation to the stop. */
import { expect, it } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { Namespace, needsSystemd } from './service-namespace.ts';

/** A job that writes until it is reported to stop. */
const WRITER =
  'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i: příliš žluťoučký kůň"; echo "error $i" >&2; sleep 0.05; done';

/** Where one of the units has its files. */
interface UnitPlace {
  readonly unit: string;
  readonly configDirectory: string;
  readonly mirrorDirectory: string;
}

interface Job {
  readonly jobId: string;
  readonly taskId: string;
  /** On the cluster. */
  readonly directory: string;
  readonly stdout: string;
}

class Installation {
  readonly host: Namespace;
  readonly place: UnitPlace;
  readonly job: Job;
  /** Of the job's standard output. */
  readonly mirror: string;

  private constructor(host: Namespace, place: UnitPlace, job: Job) {
    this.host = host;
    this.place = place;
    this.job = job;
    this.mirror = `${place.mirrorDirectory}/${job.jobId}/live/${job.taskId}/stdout.log`;
  }

  /** The commands of docs/service.md, except that the program is there already, and up to the configuration. */
  static async make(host: Namespace, place: UnitPlace): Promise<Installation> {
    await host.sh(`
      printf '#!/bin/sh\\nexec /usr/local/bin/node /opt/app/dist/cli/main.js "$@"\\n' > /usr/local/bin/agent
      chmod 755 /usr/local/bin/agent
      mkdir /var/cluster
      systemd-run --quiet --unit=cluster agent sandbox --directory /var/cluster --port 8090
      groupadd --system jobtail
      useradd --system --gid jobtail --no-create-home --shell /usr/sbin/nologin jobtail-agent
      cp /opt/app/systemd/agent*.service /etc/systemd/system/
      for unit in agent.service agent@.service; do cmp /opt/app/systemd/$unit /etc/systemd/system/$unit; done
      systemctl daemon-reload`);
    await until('the cluster to listen', () =>
      host.succeeds('test -s /var/cluster/secrets/password && curl -s -o /dev/null http://127.0.0.1:8090/'),
    );
    const spec = { tasks: [{ command: ['sh', '-c', WRITER] }] };
    const { jobId, tasks } = (await control(host, 'jobs', spec)) as {
      jobId: string;
      tasks: { taskId: string; directory: string; files: { stdout: string } }[];
    };
    const [task] = tasks;
    if (task === undefined) throw new Error(`job ${jobId} has no task`);
    const { taskId, directory } = task;
    return new Installation(host, place, { jobId, taskId, directory, stdout: task.files.stdout });
  }

  /** Writes the configuration, and the password that it needs. */
  async configure(text: string): Promise<void> {
    await this.host.sh(
      `mkdir -m 755 -p "$1"
       install -m 600 /var/cluster/secrets/password "$1/password"
       printf %s "$2" > "$1/config.yaml"
       chmod 644 "$1/config.yaml"`,
      this.place.configDirectory,
      text,
    );
  }

  /** Runs a command of the agent as root. */
  agent(command: string, ...args: readonly string[]): Promise<string> {
    return this.host.sh('agent "$@"', command, '-c', `${this.place.configDirectory}/config.yaml`, ...args);
  }

  /** A property of the unit. */
  show(property: string): Promise<string> {
    return this.host.show(this.place.unit, property);
  }

  async isActive(): Promise<void> {
    await until('the unit to be active', async () => (await this.show('ActiveState')) === 'active');
  }

  /** The mirror gets more bytes, and is the beginning of the remote file. */
  async grows(): Promise<void> {
    const { host, mirror, job } = this;
    const size = async () => Number(await host.sh('stat -c %s "$1" 2>/dev/null || echo 0', mirror));
    const before = await size();
    await until('the mirror to grow', async () => (await size()) > before + 500);
    const there = await host.sh('cat "$1"', mirror);
    expect((await host.sh('cat "$1"', job.stdout)).startsWith(there), 'it is the beginning').toBe(true);
  }

  /** The job ends, every byte comes, and the unit stops in order and quickly. */
  async stops(): Promise<void> {
    const { host, mirror, job } = this;
    await host.sh('touch "$1/stop"', job.directory);
    await until('every byte', () => host.succeeds('sleep 0.2; cmp "$1" "$2"', job.stdout, mirror));
    await host.sh('systemctl stop "$1"', this.place.unit);
    expect(await this.show('Result')).toBe('success');
    expect(await this.show('ExecMainStatus')).toBe('0');
    const at = async (property: string) => Number(await this.show(`${property}TimestampMonotonic`)) / 1e6;
    expect((await at('InactiveEnter')) - (await at('ActiveExit')), 'seconds to stop').toBeLessThan(5);
    expect(await host.sh('cmp "$1" "$2"', job.stdout, mirror)).toBe('');
  }
}

/** For the simulated cluster. */
function baseConfig(mirrorDirectory: string): string {
  return `
service:
  protocol: soap
  fileTransferUrl: http://127.0.0.1:8090/FileTransferWs
  namespace: http://sandbox.example.org/
  baseUrl: http://127.0.0.1:8090
auth: {method: password, username: alice, passwordCredential: password}
mirror: {directory: ${mirrorDirectory}}
poll: {minIntervalSeconds: 0.2, maxIntervalSeconds: 1}
`;
}

/** Asks the simulated cluster for something, or tells it (simulator/control.ts). */
async function control(host: Namespace, what: string, body?: unknown): Promise<unknown> {
  const data = body === undefined ? [] : ['-d', JSON.stringify(body)];
  const answer = await host.sh(
    'curl -sf -H "authorization: Bearer $(cat /var/cluster/secrets/control-token)" "$@"',
    `http://127.0.0.1:8090/sandbox/${what}`,
    ...data,
  );
  return JSON.parse(answer);
}

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
