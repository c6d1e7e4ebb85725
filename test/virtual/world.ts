/** One run: a simulated cluster, service, disk and clock, with the real agent on them. The seed decides all. */
import type { Config } from '../../src/config/config.ts';
import type { JobId } from '../../src/job.ts';
import type { Store } from '../../src/store/store.ts';
import { type AgentPlace, configured, type Settings, SimulatedAgent, settingsOf } from './agent.ts';
import { Chance } from './chance.ts';
import { type Lengths, lengthsOf } from './collections.ts';
import { SimulatedReceiver } from './receiver.ts';
import { checkSafety, checkStopped, isReadable } from './safety.ts';
import { SimulatedService } from './service.ts';
import { begun, SimulatedWorld } from './simulated-world.ts';

/** Parts of passwords, session codes and the addresses of receivers. */
const SECRETS = /hunter-secret|-of-the-simulation|the-secret-path/;
/** So late after a standstill, the scheduler has gone round. */
const MAX_TURN_MS = 60_000;

export class World extends SimulatedWorld {
  readonly seed: number;
  readonly service: SimulatedService;
  readonly receiver = new SimulatedReceiver();
  settings: Settings;
  agent!: SimulatedAgent;
  #config!: Config;

  protected constructor(seed: number) {
    super(seed, 'commands', (ms) => new Promise((resolve) => void this.agent.clock.timer(ms, resolve)));
    this.seed = seed;
    this.service = new SimulatedService(new Chance(seed, 'service'), this.time);
    this.settings = settingsOf(this.chance);
    this.time.onEvent = () => this.checkConduct();
  }

  static make(seed: number, changes: Partial<Settings> = {}): Promise<World> {
    return begun(new World(seed), async (world) => {
      await world.configure({ ...world.settings, ...changes });
      world.start();
    });
  }

  /** What the file of the configuration says. */
  get config(): Config {
    return this.#config;
  }

  get store(): Store {
    return this.agent.store;
  }

  get isUp(): boolean {
    return this.agent?.process.isAlive === true;
  }

  override note(line: string): void {
    this.log(line);
    super.note(line);
  }

  /** What stands in the log; no secret does, and each value is readable. */
  log(text: string): void {
    if (SECRETS.test(text)) this.service.offences.push(`a secret is logged: ${text}`);
    if (!isReadable(text)) this.service.offences.push(`the log shows no value: ${text}`);
  }

  async configure(settings: Settings): Promise<Config> {
    this.settings = settings;
    this.#config = await configured(this.directory, settings);
    return this.#config;
  }

  /** Starts the agent on what is there. */
  start(): void {
    this.begin();
  }

  protected begin(how: Pick<AgentPlace, 'isCommand' | 'isDirect' | 'hasRareTicks' | 'onOpened'> = {}): void {
    this.note('the agent starts');
    const { directory, time, service } = this;
    const chance = new Chance(this.seed, `agent ${time.passedMs}`);
    this.agent = new SimulatedAgent(this.#config, {
      ...{ directory, time, service, chance, receiver: this.receiver },
      note: (line) => this.note(line),
      log: (text) => this.log(text),
      onStopped: () => checkStopped(this),
      aside: (work) => this.disk.aside(work),
      isDiskSlow: () => this.disk.flushMs > 0,
      ...how,
    });
  }

  /** The process ends without a last word, and the machine with it if it has no power. */
  async kill(hasPower: boolean): Promise<void> {
    this.note(hasPower ? 'the agent is killed' : 'the machine loses its power');
    this.disk.isDead = true;
    this.agent.kill();
    // What still runs of it can do nothing any more.
    await this.machine.settle();
    this.disk.restart();
    if (!hasPower) this.disk.powerLoss(this.chance);
  }

  /** Lets time pass; what the agent may never do is looked for. */
  async pass(ms: number): Promise<void> {
    await this.time.pass(ms);
    this.check();
  }

  check(): void {
    this.checkConduct();
    this.disk.aside(() => checkSafety(this));
  }

  /** Called after each event. */
  checkConduct(): void {
    const [offence] = this.service.offences;
    this.requireNone(offence && `the service was called as it must not be: ${offence}`);
    const { isFollowing, process, health } = this.agent;
    if (!this.isUp || !isFollowing || process.stoppedUntil > this.time.passedMs - MAX_TURN_MS) return;
    const unhealthy = health.unhealthy();
    if (unhealthy !== undefined) throw new Error(unhealthy);
  }

  /** How much the agent remembers; how much the world does is nothing of it. */
  lengths(): Lengths {
    const { agent, time, service, receiver, disk, chance } = this;
    const others = [time, service, receiver, disk, chance, agent.process, agent.line ?? {}];
    return lengthsOf(agent, others);
  }

  jobIds(): JobId[] {
    return [...this.service.jobs.keys()];
  }

  protected override killAll(): void {
    this.agent?.kill();
  }
}
