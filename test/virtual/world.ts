/** One run: a simulated cluster, service, disk and clock, with the real agent on them. The seed decides all. */
import type { Config } from '../../src/config/config.ts';
import type { Store } from '../../src/store/store.ts';
import { type AgentPlace, configured, type Settings, type SimulatedAgent, USUAL } from './agent.ts';
import type { Lengths } from './collections.ts';
import { checkSafety, checkStopped } from './safety.ts';
import { begun, SimulatedWorld } from './simulated-world.ts';

export class World extends SimulatedWorld {
  settings: Settings = USUAL;
  agent!: SimulatedAgent;
  #config!: Config;

  protected constructor(seed: number) {
    super(seed, 'commands', (ms) => new Promise((resolve) => void this.agent.clock.timer(ms, resolve)));
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
    const isDiskSlow = () => this.disk.flushMs > 0;
    this.agent = this.agentOf('agent', this.#config, { onStopped: () => checkStopped(this), isDiskSlow, ...how });
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

  check(): void {
    this.checkConduct();
    this.disk.aside(() => checkSafety(this));
  }

  protected checkConduct(): void {
    this.requireNoOffence();
    if (this.isUp && this.agent.isFollowing) this.requireHealthy(this.agent);
  }

  lengths(): Lengths {
    return this.memoryOf(this.agent);
  }

  protected override killAll(): void {
    this.agent?.kill();
  }
}
