"""stable-baselines3: on-policy and off-policy reinforcement learning on small environments."""

import warnings

import gymnasium
import numpy
import stable_baselines3 as sb3
import torch
from checks import check, main, weights
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.her import HerReplayBuffer

warnings.simplefilter("ignore")


def small():
    """Options of a small network. Algorithms write into what they are given."""
    return dict(net_arch=[16])


def learned(kind, environment, steps, **options):
    model = kind("MlpPolicy", environment, seed=3, device="cpu", policy_kwargs=small(), **options)
    model.learn(steps)
    observation = numpy.zeros((1, *model.observation_space.shape), numpy.float32)
    action, _ = model.predict(observation, deterministic=True)
    return {"weights": weights(model.policy), "action": action, "steps": model.num_timesteps}


@check
def ppo():
    return learned(sb3.PPO, "CartPole-v1", 256, n_steps=64, batch_size=32, n_epochs=3)


@check
def a2c():
    return learned(sb3.A2C, "CartPole-v1", 100, n_steps=10)


@check
def dqn():
    return learned(
        sb3.DQN,
        "CartPole-v1",
        200,
        learning_starts=50,
        batch_size=16,
        target_update_interval=50,
        buffer_size=500,
    )


@check
def sac():
    return learned(sb3.SAC, "Pendulum-v1", 70, learning_starts=40, batch_size=16, buffer_size=500)


@check
def td3():
    noise = NormalActionNoise(numpy.zeros(1), 0.1 * numpy.ones(1))
    return learned(
        sb3.TD3, "Pendulum-v1", 250, learning_starts=50, batch_size=16, action_noise=noise, buffer_size=500
    )


@check
def ddpg():
    return learned(sb3.DDPG, "Pendulum-v1", 250, learning_starts=50, batch_size=16, buffer_size=500)


class Reach(gymnasium.Env):
    """A goal in one dimension; pixels on request."""

    def __init__(self, goals=False, pixels=False):
        self.goals, self.pixels = goals, pixels
        box = gymnasium.spaces.Box(-10, 10, (1,), numpy.float32)
        if pixels:
            self.observation_space = gymnasium.spaces.Box(0, 255, (3, 36, 36), numpy.uint8)
        elif goals:
            self.observation_space = gymnasium.spaces.Dict(
                observation=box, achieved_goal=box, desired_goal=box
            )
        else:
            self.observation_space = gymnasium.spaces.Dict(position=box, which=gymnasium.spaces.Discrete(3))
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), numpy.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.steps = numpy.zeros(1, numpy.float32), 0
        self.goal = self.np_random.uniform(-2, 2, 1).astype(numpy.float32)
        return self._observe(), {}

    def step(self, action):
        self.position = numpy.clip(self.position + action, -10, 10).astype(numpy.float32)
        self.steps += 1
        reward = self.compute_reward(self.position, self.goal, {})
        return self._observe(), float(numpy.squeeze(reward)), False, self.steps >= 12, {}

    def compute_reward(self, achieved, desired, info):
        return -(numpy.linalg.norm(achieved - desired, axis=-1) > 0.5).astype(numpy.float32)

    def _observe(self):
        if self.pixels:
            image = numpy.zeros((3, 36, 36), numpy.uint8)
            image[:, int(self.position[0]) + 15] = 255
            return image
        if self.goals:
            return {"observation": self.position, "achieved_goal": self.position, "desired_goal": self.goal}
        return {"position": self.position, "which": self.steps % 3}


@check
def dictionaries():
    check_env(gymnasium.make("CartPole-v1").unwrapped)
    model = sb3.PPO("MultiInputPolicy", Reach(), seed=3, n_steps=32, batch_size=16, n_epochs=2, device="cpu")
    model.learn(64)
    return {"weights": weights(model.policy)}


@check
def hindsight():
    model = sb3.SAC(
        "MultiInputPolicy", Reach(goals=True), seed=3, learning_starts=30, batch_size=16, buffer_size=200, device="cpu",
        replay_buffer_class=HerReplayBuffer, policy_kwargs=small(),
    )  # fmt: skip
    model.learn(50)
    return {"weights": weights(model.policy)}


@check
def pixels():
    model = sb3.A2C(
        "CnnPolicy",
        Reach(pixels=True),
        seed=3,
        n_steps=4,
        device="cpu",
        policy_kwargs=dict(features_extractor_kwargs=dict(features_dim=16)),
    )
    model.learn(8)
    return {"weights": weights(model.policy)}


@check
def continuous_ppo():
    environment = VecNormalize(make_vec_env("Pendulum-v1", n_envs=2, seed=1))
    model = sb3.PPO(
        "MlpPolicy", environment, seed=3, n_steps=32, batch_size=16, n_epochs=2, use_sde=True, target_kl=0.5,
        device="cpu", policy_kwargs=dict(net_arch=dict(pi=[8], vf=[8]), activation_fn=torch.nn.ReLU),
    )  # fmt: skip
    model.learn(128)
    return {"weights": weights(model.policy), "mean": environment.obs_rms.mean}


@check
def files():
    model = sb3.PPO(
        "MlpPolicy",
        "CartPole-v1",
        seed=3,
        n_steps=32,
        batch_size=16,
        n_epochs=1,
        device="cpu",
        policy_kwargs=small(),
    )
    model.learn(32)
    model.save("agent")
    again = sb3.PPO.load("agent", env=make_vec_env("CartPole-v1", seed=5), device="cpu")
    reward = evaluate_policy(again, make_vec_env("CartPole-v1", seed=5), n_eval_episodes=2)
    again.learn(32)
    off = sb3.DQN(
        "MlpPolicy",
        "CartPole-v1",
        seed=3,
        learning_starts=10,
        device="cpu",
        policy_kwargs=small(),
        buffer_size=50,
    )
    off.learn(20)
    off.save_replay_buffer("buffer")
    off.load_replay_buffer("buffer")
    return {
        "reward": list(reward),
        "same": weights(again.policy),
        "buffer": off.replay_buffer.size(),
        "repr": repr(model.policy),
    }


if __name__ == "__main__":
    main("stable_baselines3", "gymnasium")
