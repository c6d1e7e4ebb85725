/** The shipped unit, installed as docs/service.md describes, beside a simulated cluster with a job. */
import { expect } from 'vitest';
import { until } from './e2e-until.ts';
import type { Namespace } from './service-namespace.ts';

/** A job that writes until it is reported to stop. */
const WRITER =
  'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i: příliš žluťoučký kůň"; echo "error $i" >&2; sleep 0.05; done';

/** Where one of the units has its files. */
interface UnitPlace {
  readonly unit: string;
  readonly configDirectory: string;
  readonly mirrorDirectory: string;
}

export interface Job {
  readonly jobId: string;
  readonly taskId: string;
  /** On the cluster. */
  readonly directory: string;
  readonly stdout: string;
}

export class Installation {
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
export function baseConfig(mirrorDirectory: string): string {
  return `
service:
  fileTransferUrl: http://127.0.0.1:8090/FileTransferWs
  namespace: http://sandbox.example.org/
  baseUrl: http://127.0.0.1:8090
auth: {method: password, username: alice, passwordCredential: password}
mirror: {directory: ${mirrorDirectory}}
poll: {minIntervalSeconds: 0.2, maxIntervalSeconds: 1}
`;
}

/** Asks the simulated cluster for something, or tells it (simulator/control.ts). */
export async function control(host: Namespace, what: string, body?: unknown): Promise<unknown> {
  const data = body === undefined ? [] : ['-d', JSON.stringify(body)];
  const answer = await host.sh(
    'curl -sf -H "authorization: Bearer $(cat /var/cluster/secrets/control-token)" "$@"',
    `http://127.0.0.1:8090/sandbox/${what}`,
    ...data,
  );
  return JSON.parse(answer);
}
