redis.call('SET', KEYS[2], ARGV[4] .. answer, 'PX', ARGV[5])
