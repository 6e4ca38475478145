from builds import lifecycle
from work.kinds import Kind

BUILD = Kind(lifecycle.BUILD, rescue=lifecycle.rescue, budget="ADE_BUILD_TIMEOUT")
